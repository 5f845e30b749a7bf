"""The values that notebook 06 asks for: all that is said of them is ``values.toml``."""
