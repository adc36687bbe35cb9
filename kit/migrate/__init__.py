"""Plans that people approve, carried out step by step, proved and undone. No client library and no Spark in here.

``plan`` is what will change, ``checks`` what makes that unsafe, ``approval`` who agreed to it; ``run`` carries it out
through a ``performer`` and writes everything to ``runs/<run-id>/`` by the ``journal``; ``record`` loads that again, and
``rendering`` shows both.
"""
