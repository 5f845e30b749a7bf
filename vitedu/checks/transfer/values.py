"""The values that notebook 09 asks for: all that is said of them is ``values.toml``."""
