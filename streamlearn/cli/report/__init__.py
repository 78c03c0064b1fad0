"""A page about a tested model: one file that loads nothing, for screens of any size and for paper.

page      what is shown, and the page
words     the numbers as sentences
charts    pictures as SVG
axes      numbers to places in a picture
"""

from streamlearn.cli.report.page import page

__all__ = ["page"]
