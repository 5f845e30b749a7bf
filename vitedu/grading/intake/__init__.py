"""Read a folder of returned files and extract the answers as text. Nothing is executed."""
