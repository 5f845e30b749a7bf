"""What a textbook's model does without: options, fast layers, weights that move."""
