"""The values that notebook 07 asks for: all that is said of them is ``values.toml``."""
