"""The data types of streamgauge: frozen values. This package imports no other one."""
