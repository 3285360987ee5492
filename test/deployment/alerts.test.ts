/** The alerts for Prometheus. Where its `promtool` is installed, it plays each fault, and only the alert of that fault may fire. */
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import { parse, stringify } from 'yaml'

const FILE = join(__dirname, '../../deploy/monitoring/alerts.yaml')
const { groups } = parse(readFileSync(FILE, 'utf8')) as {
  groups: { rules: { alert: string; expr: string; annotations: Record<string, string> }[] }[]
}
const RULES = groups.flatMap(({ rules }) => rules)

/** Hours after which the alerts are looked at. */
const LOOK_AT = '3h'
/** Values of a series, one for each minute. `jump` changes ten minutes before the alerts are looked at; `_` stands for a missing value. */
const constant = (value: number): string => `${value}x240`
const growing = (by: number): string => `0+${by}x240`
const jump = (from: string, to: string): string => `${from}x170 ${to}x70`

const ENDS = 'crucible_attempts_ended_total{backend="ec2",capacity="spot",end='
const CALLS = 'crucible_activities_total{role="ec2",activity="launch",outcome='
const WAITS = 'temporal_activity_schedule_to_start_latency_bucket{task_queue="crucible.ec2",le='

/** A deployment in which everything is well. */
const WELL: Readonly<Record<string, string>> = {
  'up{job="crucible",instance="a"}': constant(1),
  'crucible_jobs{state="running"}': constant(3),
  'crucible_watch_age_seconds{backend="ec2"}': constant(2),
  [`${CALLS}"ok"}`]: growing(5),
  [`${ENDS}"succeeded"}`]: growing(1),
  [`${WAITS}"1"}`]: growing(5),
  [`${WAITS}"100"}`]: growing(5),
  [`${WAITS}"+Inf"}`]: growing(5),
}

/** Series that differ when something is wrong; undefined is a missing one. */
const FAULTS: Readonly<Record<string, Readonly<Record<string, string | undefined>>>> = {
  CrucibleWorkerDown: { 'up{job="crucible",instance="a"}': jump('1', '0') },
  CrucibleOrchestratorMissing: { 'crucible_jobs{state="running"}': undefined },
  CrucibleWatchStale: { 'crucible_watch_age_seconds{backend="ec2"}': jump('2', '400') },
  CrucibleProviderFails: { [`${CALLS}"transient"}`]: growing(2) },
  CrucibleKeyRefused: { [`${CALLS}"auth"}`]: jump('_', '1') },
  CrucibleQuotaUsedUp: { [`${ENDS}"quota"}`]: growing(1) },
  CrucibleNoCapacity: { [`${ENDS}"capacity"}`]: growing(1) },
  CrucibleManyInterruptions: { [`${ENDS}"interrupted"}`]: growing(1) },
  CrucibleUnknownFailures: { [`${ENDS}"unclassified"}`]: jump('_', '1') },
  CrucibleOrphans: { 'crucible_garbage_total{backend="ec2",action="ended"}': jump('_', '1') },
  CrucibleOrphansStay: { 'crucible_garbage_total{backend="ec2",action="unseen"}': growing(1) },
  CrucibleWorkersBusy: { [`${WAITS}"1"}`]: constant(0) },
}

const hasPromtool = spawnSync('promtool', ['--version']).status === 0
const withPromtool = hasPromtool ? it : it.skip

/** Plays series, and expects that these alerts fire, and no others. */
function play(series: Readonly<Record<string, string | undefined>>, firing: readonly string[]): void {
  const folder = mkdtempSync(join(tmpdir(), 'crucible-alerts-'))
  const played = Object.entries({ ...WELL, ...series }).flatMap(([name, values]) =>
    values === undefined ? [] : [{ series: name, values }],
  )
  const count = 'count by (alertname) (ALERTS{alertstate="firing"})'
  const expected = firing.map((alertname) => ({ labels: `{alertname="${alertname}"}`, value: 1 }))
  const test = {
    rule_files: [FILE],
    evaluation_interval: '1m',
    tests: [
      {
        interval: '1m',
        input_series: played,
        promql_expr_test: [{ expr: count, eval_time: LOOK_AT, exp_samples: expected }],
      },
    ],
  }
  try {
    const file = join(folder, 'test.yaml')
    writeFileSync(file, stringify(test))
    execFileSync('promtool', ['test', 'rules', file], { stdio: 'pipe', encoding: 'utf8' })
  } finally {
    rmSync(folder, { recursive: true })
  }
}

describe('the alerts', () => {
  it('each say what is wrong and what to do, and have a fault that raises them', () => {
    for (const { alert, annotations } of RULES) {
      expect([alert, Object.keys(annotations)]).toEqual([alert, ['summary', 'runbook']])
    }
    expect(RULES.map(({ alert }) => alert)).toEqual(Object.keys(FAULTS))
  })

  it('use, as the dashboard does, metrics that exist', () => {
    const source = readFileSync(join(__dirname, '../../activities/metrics.ts'), 'utf8')
    const dashboard = readFileSync(join(FILE, '../dashboard.json'), 'utf8')
    for (const text of [RULES.map(({ expr }) => expr).join(' '), dashboard]) {
      const used = text.match(/\bcrucible_[a-z_]+/g) ?? []
      expect(used.length).toBeGreaterThan(8)
      for (const name of used) expect(source).toContain(`'${name.replace(/_(?:total|bucket)$/, '')}'`)
    }
  })

  withPromtool('are silent while everything is well', () => play({}, []))

  withPromtool.each(Object.entries(FAULTS))('has one for its fault alone: %s', (alert, series) =>
    play(series, [alert]),
  )
})
