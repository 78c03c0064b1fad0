"""Regret: what was paid beyond the best fixed model in hindsight (DESIGN.md, "Regret")."""

from streamlearn.regret.curve import RegretCurve, curve
from streamlearn.regret.ledger import Ledger
from streamlearn.regret.report import Report
from streamlearn.regret.tracker import Tracker

__all__ = ["Ledger", "RegretCurve", "Report", "Tracker", "curve"]
