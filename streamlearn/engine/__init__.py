"""The one hot loop: rows, learners, and the model that puts events into them."""
