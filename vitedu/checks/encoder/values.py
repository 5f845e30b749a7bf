"""The values that notebook 03 asks for: all that is said of them is ``values.toml``."""
