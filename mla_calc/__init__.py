"""Cost calculator and roofline explorer for Multi-head Latent Attention."""

__version__ = "0.1.0"
