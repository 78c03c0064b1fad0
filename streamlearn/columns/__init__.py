"""Columns as events: batches in the layout of Apache Arrow, which libraries of tables share.

interface   the structs of the Arrow C data interface
batch       rows in columns, read where they lie
reader      columns become the fields of events
"""
