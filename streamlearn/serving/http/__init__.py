"""The HTTP server: any number of processes that follow the snapshots of a daemon.

options      what is served, to whom, and the limits
follower     the newest snapshot of each learner, and what is promoted
reading      bodies of requests: events as records
answering    which learner answers, and what is logged of it
predicting   records to scores and answers
roles        the fields of events that are no features
log          the log of served predictions, and all that it guarantees
inference    the Open Inference Protocol
guard        access, limits and counts around all routes
metrics      counts of all processes
openapi      the description of the interface
page         the page for trying it
app          the routes
protocol     limits on a request's head
server       processes, signals, graceful shutdown
"""
