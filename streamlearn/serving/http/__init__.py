"""The HTTP server: any number of processes that follow the snapshots of a daemon.

options      what is served, to whom, and the limits
follower     the newest snapshot of each learner
reading      bodies of requests: events as records
predicting   records to scores and answers
inference    the Open Inference Protocol
guard        access, limits and counts around all routes
metrics      counts of all processes
openapi      the description of the interface
page         the page for trying it
app          the routes
protocol     limits on a request's head
server       processes, signals, graceful shutdown
"""
