-- Requests of LiteLLM's proxy, one row each, from its table of spend on PostgreSQL. The column "status" came with
-- LiteLLM 1.69 (May 2025). Times are stored in UTC without a zone; only "startTime" has an index.
--
-- What a client asked for at most, and why generation ended, stand only beside the prompts, where those are stored at
-- all; they are not read, so that no prompt leaves the database. Cuts are therefore not told.
SELECT
    "endTime" AS time,
    -- A failure before a deployment was chosen has no group.
    coalesce(nullif(model_group, ''), model) AS model,
    substring(api_base FROM '://(?:[^@/]*@)?([^/]+)') AS upstream,
    prompt_tokens,
    completion_tokens,
    CAST(extract(epoch FROM "endTime" - "startTime") AS double precision) AS duration,
    -- An answer in one piece has its end there.
    CASE
        WHEN "completionStartTime" < "endTime"
            THEN CAST(extract(epoch FROM "completionStartTime" - "startTime") AS double precision)
    END AS ttft,
    CASE
        WHEN status IS DISTINCT FROM 'failure' THEN 200
        WHEN metadata -> 'error_information' ->> 'error_code' ~ '^[45][0-9][0-9]$'
            THEN CAST(metadata -> 'error_information' ->> 'error_code' AS integer)
        ELSE 500
    END AS status,
    CASE WHEN status = 'failure' THEN left(metadata -> 'error_information' ->> 'error_message', 2000) END
        AS error_message,
    coalesce(nullif(api_key, ''), end_user) AS client
FROM "LiteLLM_SpendLogs"
WHERE "endTime" >= :since AT TIME ZONE 'UTC'
    AND "endTime" < :until AT TIME ZONE 'UTC'
    AND "startTime" >= :since AT TIME ZONE 'UTC' - INTERVAL '1 day'
    AND "startTime" < :until AT TIME ZONE 'UTC'
    -- An answer out of the gateway's own cache never reached an engine.
    AND cache_hit IS DISTINCT FROM 'True'
