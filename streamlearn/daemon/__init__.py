"""The daemon: poll, decode, predict, learn, publish, measure, checkpoint.

build                 the loop from a configuration; builders/ makes what it connects
preflight             what would keep a configuration from running here
loop                  ownership, resumption, polling, the clean end
pipeline              what happens to a batch of records
event_reader          records to rows; delayed_event_reader joins labels,
                      backfill_reader reads history first
learners              the models that learn the same rows
scores, served_loss   how good they are, and how good what was served
label_monitor, absent_fields, until
                      warnings of what streams do not have; when to stop
checkpointing/        epochs, ownership, writing, resumption
outputs/              predictions, dead letters, the record for replays
collectors/           observers of batches, which fill metrics and the page
process/              exit codes, signals, log, watchdog
"""
