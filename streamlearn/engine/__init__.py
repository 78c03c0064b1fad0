"""The hot loop: rows, learners, and the model that feeds events to them."""
