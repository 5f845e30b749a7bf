"""The values that notebook 08 asks for: all that is said of them is ``values.toml``."""
