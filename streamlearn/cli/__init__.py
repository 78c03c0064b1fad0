"""The command line.

main             the command `streamlearn`: errors in one line, exit codes
commands/        help, examples and arguments of each command; light, so that --help is immediate
actions/         what each command does; imported when it runs
options          the options that several commands share
configured       the configuration file of a command, with --set
saved_models     model files with their notes
served_models    what is served: promotions and losses
decoded_batches  one pass over files; progressive: its curve; holdout: its last records kept aside
record_writer    records in Avro and Protobuf
guessing         what the fields of files are
seen_fields      which fields, of a model or declared, no event had
sharding         files in shards, in threads or on Ray
report/          the pages of `streamlearn test`
parsing          argparse, with errors that name the nearest valid option
tables           rows for people (terminal), pipes (plain lines) and programs (JSON)
"""
