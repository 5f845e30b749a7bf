"""A student's own model as one file, ``my_vit.py``, from the answers that passed.

Role: ``source`` reads the text of an answer while its object lives, ``parts`` puts texts together
into one file, ``trial`` runs that file once, ``my_vit`` decides what is written and where.
``my_vit.txt`` is the file with a place for each part. ``importing`` lets a notebook import it.
"""
