"""The cost engine: shapes and a plan in, exact counts and bounds out."""
