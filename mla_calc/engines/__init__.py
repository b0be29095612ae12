"""What the inference engines do."""
