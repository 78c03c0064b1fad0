"""Regret: a learner's objective minus that of the best fixed model in hindsight."""

from streamlearn.regret.ledger import Ledger
from streamlearn.regret.regret_curve import RegretCurve, curve
from streamlearn.regret.report import Report
from streamlearn.regret.tracker import Tracker

__all__ = ["Ledger", "RegretCurve", "Report", "Tracker", "curve"]
