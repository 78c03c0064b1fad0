"""Valid configurations, to which tests make one change."""

SYNTHETIC = '[source]\nkind = "synthetic"\nevents = 100\n'
KAFKA = """
[source]
kind = "kafka"
bootstrap = "localhost:9092"
topics = ["clicks"]
[format]
label = "clicked"
[checkpoint]
path = "state"
"""
