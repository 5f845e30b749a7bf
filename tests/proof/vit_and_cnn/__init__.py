"""Right answers to the exercises of ``vit_and_cnn``, and what becomes of their mutants."""
