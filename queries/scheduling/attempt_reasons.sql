-- The reasons of each attempt, one by one, as the scheduler wrote them.
-- @grain one row per reason of an attempt
-- @column cluster  text; name of the cluster
-- @column attempt_id  text; attempts.attempt_id
-- @column ordinal  count; place of the reason in the message, from 0
-- @column origin  text; scheduler (its own words)
-- @column plugin  text; filter plugin that the text belongs to, unknown when not in the catalogue
-- @column reason  text; reason as the scheduler wrote it
-- @column nodes  nodes; count as the scheduler wrote it, null when the text has none
-- @source attempt_reasons_rows
SELECT
  cluster,
  attempt_id,
  ordinal,
  origin,
  plugin,
  reason,
  nodes
FROM attempt_reasons_rows
ORDER BY cluster, attempt_id, ordinal
