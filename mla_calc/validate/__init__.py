"""The real kernel against the predictions: kernels, measurement, comparison. Only this room imports torch."""
