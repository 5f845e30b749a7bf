"""The values that notebook 04 asks for: all that is said of them is ``values.toml``."""
