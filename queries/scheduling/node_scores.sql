-- What each score plugin gave each node, as the scheduler's log tells it (-v=10).
-- @grain one row per attempt, node and plugin
-- @column cluster  text; name of the cluster
-- @column attempt_id  text; attempts.attempt_id
-- @column node  text; node that was scored
-- @column plugin  text; score plugin, Total for the final score
-- @column origin  text; scheduler (its own words)
-- @column score  count; score after normalising and weighting
-- @column weight  count; weight of the plugin, null where the log does not tell it
-- @source node_scores_rows
SELECT
  cluster,
  attempt_id,
  node,
  plugin,
  origin,
  score,
  weight
FROM node_scores_rows
ORDER BY cluster, attempt_id, node, plugin
