"""The nouns of streamgauge: frozen values that know nothing of the rest."""
