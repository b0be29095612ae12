"""Attention shapes, and reading presets and configs into them."""
