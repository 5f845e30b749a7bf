"""What the whole package stands on; nothing here knows of Transformers."""
