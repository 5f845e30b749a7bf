"""A student's own model as one file, ``my_vit.py``, from the answers that passed.

Role: ``source`` reads the text of an answer while its object lives, ``parts`` makes one file of
such texts (``my_vit.txt`` has a place for each), ``trial`` runs that file once, ``export`` decides
what is written and where, ``importing`` lets a notebook import it, ``handed_out`` knows references
that stand in the place of a part.
"""
