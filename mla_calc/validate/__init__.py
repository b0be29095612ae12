"""Measurement on a real GPU against the predictions."""
