"""Modules under the names by which notebooks of 0.2 import them."""
