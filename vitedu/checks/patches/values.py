"""The values that notebook 01 asks for: all that is said of them is ``values.toml``."""
