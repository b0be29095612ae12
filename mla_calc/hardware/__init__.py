"""GPU ceilings and the roofline."""
