"""The values that notebook 02 asks for: all that is said of them is ``values.toml``."""
