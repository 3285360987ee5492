import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from '@jest/globals'
import { fieldTable } from '../../intake/field-table'
import { formatProblem } from '../../intake/problem'
import { jobOfTemplate, parseRetrainFile, type Retrain } from '../../intake/retrain'
import { retrainFileJsonSchema } from '../../intake/retrain-schema'
import { without } from '../../core/defined'
import { DAY_MS, HOUR_MS } from '../../core/time/time'
import { microUsd } from '../../core/money/money'

const NOW_MS = Date.UTC(2026, 10, 26)
const DOCS = join(__dirname, '..', '..', 'docs')

function read(text: string): Retrain {
  const answer = parseRetrainFile(text, { fileName: 'ranker.yaml', nowMs: NOW_MS })
  if ('problems' in answer) throw new Error(answer.problems.map(formatProblem).join('\n'))
  return answer.retrain
}

function problems(text: string): string[] {
  const answer = parseRetrainFile(text, { fileName: 'ranker.yaml', nowMs: NOW_MS })
  return 'problems' in answer ? answer.problems.map(formatProblem) : []
}

const JOB = 'job:\n  run: python3 train.py\n'
const CAPACITY = `capacity:
  backend: ec2
  types: p5.48xlarge
  duration: 4d
  max_upfront: $20000
`

describe('a retraining file', () => {
  it('needs only a job: every first day of a quarter at six in UTC', () => {
    const { spec, workdir, secrets } = read(JOB)
    expect({ workdir, secrets }).toEqual({ workdir: '.', secrets: [] })
    expect(spec).toEqual({
      name: 'ranker',
      calendar: {
        months: [1, 4, 7, 10],
        day: { kind: 'date', day: 1 },
        hour: 6,
        minute: 0,
        zone: 'UTC',
        blackouts: [],
        onBlackout: 'next-day',
      },
      leadMs: DAY_MS,
      overlap: 'queue',
      data: { period: 'quarter' },
      job: { run: 'python3 train.py' },
      overrun: {},
      checkMs: DAY_MS / 2,
      notify: {},
    })
  })

  it.each([
    ['1', { kind: 'date', day: 1 }],
    ['31', { kind: 'date', day: 31 }],
    ['last', { kind: 'date', day: 'last' }],
    ['First Monday', { kind: 'weekday', weekday: 'monday', nth: 1 }],
    ['last friday', { kind: 'weekday', weekday: 'friday', nth: 'last' }],
  ])('takes the day %s', (written, day) => {
    expect(read(`${JOB}day: ${written}`).spec.calendar.day).toEqual(day)
  })

  it('reads the example, whose first date avoids the blackout', () => {
    const path = join(DOCS, '..', 'examples', 'retraining', 'retrain.yaml')
    const { spec } = read(readFileSync(path, 'utf8'))
    expect(spec.evaluation).toMatchObject({
      metric: 'loss',
      better: 'lower',
      limit: 3,
      production: 'rerun',
      tolerance: { kind: 'relative', value: 0.02 },
    })
    // The evaluation runs the job's code with another command, and finds checkpoints in the same folder.
    expect(spec.evaluation?.job).toMatchObject({
      run: expect.stringContaining('evaluate.py'),
      checkpoint: { directory: 'checkpoints' },
    })
  })

  it('makes steps of the capacity and its fallbacks: each differs from the first only by what it says', () => {
    const { capacity, leadMs, checkMs } = read(`${JOB}${CAPACITY}  regions: us-east-1
  fallbacks:
    - start_within: 10d
    - regions: [us-west-2, us-east-2]
    - kind: hourly
      max_spend: $8000
    - backends: ec2:spot
      deadline: 5d
`).spec
    expect({ leadMs, checkMs }).toEqual({ leadMs: 28 * DAY_MS, checkMs: DAY_MS })
    const first = {
      kind: 'prepaid',
      backend: 'ec2',
      types: ['p5.48xlarge'],
      count: 1,
      durationMs: 4 * DAY_MS,
      regions: ['us-east-1'],
      startWithinMs: 2 * DAY_MS,
      upfrontMaxMicroUsd: microUsd(20_000),
    }
    const hourly = without(first, ['upfrontMaxMicroUsd'])
    expect(capacity).toEqual({
      fallbackMs: 7 * DAY_MS,
      steps: [
        first,
        { ...first, startWithinMs: 10 * DAY_MS },
        { ...first, regions: ['us-west-2', 'us-east-2'] },
        { ...hourly, kind: 'hourly', spendMaxMicroUsd: microUsd(8_000) },
        {
          kind: 'unreserved',
          regions: ['us-east-1'],
          deadlineMs: 5 * DAY_MS,
          backends: [{ backend: 'ec2', capacityType: 'spot' }],
        },
      ],
    })
  })

  it('collects the secrets of all its jobs and of the webhook', () => {
    const { secrets } = read(`job:
  run: python3 train.py
  secrets: [HF_TOKEN]
evaluation:
  run: python3 evaluate.py
  metric: loss
promotion:
  run: ./publish.sh
  image: registry.example.com/publish:1
notify:
  webhook_secret: SLACK
`)
    expect(secrets).toEqual(['HF_TOKEN', 'SLACK'])
  })
})

describe('templates', () => {
  const template = {
    run: 'python3 train.py --from {{ window.start }} --to {{window.end}}',
    inputs: { 'data/train.bin': 's3://data/{{ window.start.year }}/{{ window.quarter }}.bin' },
    env: { WINDOW: '{{ window.last }}' },
  }

  it('get the dates of the run in command, inputs and environment', () => {
    const values = {
      'window.start': '2026-10-01',
      'window.end': '2027-01-01',
      'window.last': '2026-12-31',
      'window.start.year': '2026',
      'window.quarter': '2026-Q4',
    }
    const job = jobOfTemplate(template, { values, name: 'ranker', nowMs: NOW_MS })
    expect(job).toMatchObject({
      spec: {
        run: 'python3 train.py --from 2026-10-01 --to 2027-01-01',
        inputs: [{ path: 'data/train.bin', source: 's3://data/2026/2026-Q4.bin' }],
        env: { WINDOW: '2026-12-31' },
      },
    })
  })

  it.each([
    [
      'job:\n  run: train {{ window.begin }}\n',
      'ranker.yaml:2:8: job.run has {{ window.begin }}, which is not known here. ',
      'window.start',
    ],
    [
      'job:\n  run: train\n  env:\n    A: "{{ window.start"\n',
      'ranker.yaml:4:8: job.env.A has {{ without }} in ',
      'close it',
    ],
    [
      'job:\n  run: train {{ model.job }}\n',
      'ranker.yaml:2:8: job.run has {{ model.job }}, which is not known here. ',
      'the names are run.id, run.date',
    ],
  ])('with a mistake are refused with their place: %j', (text, begin, remedy) => {
    const [first = ''] = problems(text)
    expect(first.startsWith(begin)).toBe(true)
    expect(first.toLowerCase()).toContain(remedy)
  })
})

describe('a retraining file with a mistake', () => {
  it.each([
    ['every: weekly\n', '1:8: every must be one of month, quarter, half-year, year, but is "weekly"'],
    [
      'day: first mondya\n',
      '1:6: day "first mondya" is not a day of the month. Write 1 to 31, last, or first monday.',
    ],
    ['day: 32\n', '1:6: day "32" is too large. Write at most 31.'],
    ['time: 25:00\n', '1:7: time "25:00" is not a time of day.'],
    ['zone: Berlin\n', '1:7: zone must be a time zone such as Europe/Berlin'],
    ['timezone: UTC\n', '1:1: timezone is not a field. Did you mean zone?'],
    ['cron: "0 6 1 * *"\n', '1:1: cron is not a field. Did you mean every?'],
    ['run: python3 train.py\n', '1:1: run is not a field. Write it as job.run.'],
    ['resources: {gpus: 1}\n', '1:1: resources is not a field. Write it as job.resources.'],
    ['blackouts: [2027-02-30]\n', '1:13: blackouts[0] must be a date such as 2027-12-24'],
    ['blackouts:\n - {from: 2027-03-02, to: 2027-03-01}\n', '2:4: blackouts[0] ends before it begins.'],
    ['blackouts:\n - {from: 2027-01-01, to: 2027-06-01}\n', '2:4: blackouts[0] has 152 days of at most 92.'],
    ['lead: 60d\n', '1:7: lead is 60d, but capacity is sold at most 56d ahead. Write at most 56d.'],
    ['check_before: 2d\n', '1:15: check_before is 2d, but a run begins only 1d before its window.'],
    ['data: fortnight\n', '1:7: data "fortnight" is not a data window.'],
    ['promotion: {}\n', '1:1: promotion would put every new model into production, without an evaluation'],
    [
      'overrun: {extend_max: $9}\n',
      '1:1: overrun applies to the end of a reservation, but capacity is missing.',
    ],
    ['evaluation: {run: x}\n', '1:13: evaluation.metric is missing. Write, for example, metric: val_loss.'],
    [
      'evaluation: {run: x, metric: a, tolerance: much}\n',
      '1:44: evaluation.tolerance "much" is not a tolerance.',
    ],
    ['notify: {webhook: ftp://x}\n', '1:19: notify.webhook must be an http or https URL'],
    ...['https://me:pw@x/y', 'https://me@x', 'http://:pw@x/y#z', 'https://\\me:pw@x'].map(
      (url): [string, string] => [
        `notify: {webhook: '${url}'}\n`,
        '1:19: notify.webhook contains a user name or password, which would be stored with the job.',
      ],
    ),
    [
      'rehearsal: {run: x, resources: {gpus: four}}\n',
      '1:39: rehearsal.resources.gpus "four" is not a whole number',
    ],
    [
      'capacity: {backend: ec2, types: p5, duration: 4d}\n',
      '1:11: capacity has no max_upfront, and prepaid capacity cannot be returned.',
    ],
    [
      'capacity: {backend: ec2, types: p5, duration: 4d, kind: hourly}\n',
      '1:11: capacity has no max_spend, and hourly',
    ],
    [
      `${CAPACITY}  release_idle: 2h\n`,
      '6:3: capacity.release_idle does not apply to capacity that is prepaid. Remove it.',
    ],
    [
      `${CAPACITY}  count: 2\n`,
      '6:10: capacity.count is above 1, and a job runs on one machine: the others would be paid for and idle. Write 1, or remove it.',
    ],
    [`${CAPACITY}  fallbacks: [{}]\n`, '6:15: capacity.fallbacks[0] changes nothing.'],
    [
      `${CAPACITY}  fallbacks: [{backends: ec2, count: 2}]\n`,
      '6:31: capacity.fallbacks[0].count applies to reservations, but backends reserve nothing.',
    ],
    [
      `${CAPACITY}  fallbacks: [{deadline: 2d}]\n`,
      '6:26: capacity.fallbacks[0].deadline belongs to backends',
    ],
    [
      'capacity: {backend: ec2, types: p5, duration: 4d, kind: hourly, max_spend: $9}\noverrun: {extend_max: $9}\n',
      '2:11: overrun.extend_max is about prepaid capacity, and hourly capacity has no fixed time. Remove it.',
    ],
  ])('is refused with line and column: %j', (text, problem) => {
    expect(problems(text + JOB)[0]).toContain(`ranker.yaml:${problem}`)
  })

  it('says mistakes of the job where they are, with the examples of a job file', () => {
    expect(problems('job:\n  resources:\n    gpus: four\n  run: x\n')).toEqual([
      'ranker.yaml:3:11: job.resources.gpus "four" is not a whole number or a range of them. Write 4, 16+ (at least), 2..8 (from, to) or ..8 (at most).',
    ])
    expect(problems('job:\n  run: x\n  deadline: 2027-01-01T00:00:00Z\n')).toEqual([
      'ranker.yaml:3:13: job.deadline is a fixed time, which would be over for every later run. Write a duration from the launch, such as 36h.',
    ])
    expect(problems('every: month\n')[0]).toMatch(
      /^ranker.yaml:1:1: job is missing\. Write, for example, job: /,
    )
  })
})

describe("the retraining file's JSON Schema", () => {
  const schema = retrainFileJsonSchema()

  it('is the one in docs, with its table', () => {
    const how = 'run `node tools/gen-job-schema.mjs`'
    const file: unknown = JSON.parse(readFileSync(join(DOCS, 'retrain.schema.json'), 'utf8'))
    expect({ file, how }).toEqual({ file: schema, how })
    const page = readFileSync(join(DOCS, 'reference/retraining-file.md'), 'utf8')
    const table = /<!-- fields -->\n([^]*)\n<!-- \/fields -->/.exec(page)?.[1]
    expect({ table, how }).toEqual({ table: fieldTable(schema), how })
  })

  interface Schema {
    examples?: unknown[]
    properties?: Record<string, Schema>
  }
  const shown = Object.entries((schema as Schema).properties!).flatMap(([name, field]) =>
    (field.examples ?? []).map((example) => ({ name, example })),
  )

  it.each(shown)('has an example of $name that the reader takes: $example', ({ name, example }) => {
    const base: Record<string, unknown> = {
      job: { run: 'x' },
      capacity: { backend: 'ec2', types: ['p5'], duration: '4d', max_upfront: '$9' },
      evaluation: { run: 'x', metric: 'loss' },
    }
    const text = JSON.stringify({ ...base, [name]: example })
    expect(problems(text)).toEqual([])
    expect(read(text).spec.leadMs / HOUR_MS).toBeGreaterThan(0)
  })
})
