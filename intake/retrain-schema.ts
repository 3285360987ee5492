/** The schema of the retraining file, with the texts that editors and docs/reference/retraining-file.md show. */
import { z } from 'zod'
import { BLACKOUT_DAYS_MAX, isDate, PERIODS } from '../core/time/calendar'
import { DIRECTIONS, OVERLAPS } from '../core/retraining/retraining'
import { formatDuration } from '../core/time/time'
import { isZone } from '../core/time/zones'
import { backends, capacity, RETRAIN_DEFAULTS } from './capacity-schema'
import { command, envName, jobName, webhook } from './fields'
import * as as from './written'
import { field, withExamples } from './schema-field'

/** Parts of a job file that an evaluation, a promotion or a rehearsal may have different from the job's. */
const jobChange = {
  run: field(
    command,
    'The command. It starts from the checkpoint of the model, like a job that resumes.',
    'python3 evaluate.py',
  ),
  ...Object.fromEntries(
    [
      'setup',
      'image',
      'inputs',
      'resources',
      'duration',
      'backends',
      'regions',
      'reservation',
      'env',
      'outputs',
      'budget',
      'deadline',
    ].map((name) => [name, field(z.unknown(), `As in a job file (default: that of \`job\`).`).optional()]),
  ),
}

const evaluation = z.strictObject({
  ...jobChange,
  metric: field(
    z.string().regex(/^[A-Za-z_][\w./-]{0,99}$/, 'is not the name of a metric'),
    'The metric that decides: a key of the JSON object that the command prints last, or writes to `metrics.json` in `CRUCIBLE_OUTPUT_DIR`.',
    'val_loss',
  ),
  better: field(z.enum(DIRECTIONS), 'Which values are better (default: `lower`).', 'higher').optional(),
  tolerance: field(
    as.tolerance,
    'How much worse than the model in production the new one may be: a share, or an amount (default: 0).',
    '2%',
    0.05,
  ).optional(),
  limit: field(
    z.number(),
    'The worst acceptable value, regardless of the model in production.',
    2.5,
  ).optional(),
  production: field(
    z.enum(['rerun', 'recorded']),
    '`rerun` evaluates the model in production on the same data; `recorded` compares with its metric at that time (default: `rerun`).',
    'recorded',
  ).optional(),
})

const promotion = z.strictObject({
  ...jobChange,
  run: jobChange.run.optional(),
  model: field(
    jobName,
    'Name of the pointer to the model in production (default: the name of the schedule).',
    'ranker',
  ).optional(),
  ask: field(z.boolean(), 'Promote only after a person approves it (default: false).', true).optional(),
  ask_for: field(
    as.span,
    `How long to wait for it; then the old model stays (default: ${formatDuration(RETRAIN_DEFAULTS.askMs)}).`,
    '3d',
  ).optional(),
})

const date = z
  .string()
  .refine(isDate, 'must be a date such as 2027-12-24')
  .meta({ pattern: String.raw`^\d{4}-\d\d-\d\d$` })
const blackout = z.union(
  [date.transform((day) => ({ from: day, to: day })), z.strictObject({ from: date, to: date })],
  'must be a date, or a mapping with from and to',
)

/** The fields of the retraining file, in a sensible order for explaining them. */
export const retrainFile = z
  .strictObject({
    name: field(jobName, 'Name of the schedule (default: the name of the file).', 'ranker').optional(),
    every: field(z.enum(PERIODS), 'How often.', 'month').default(RETRAIN_DEFAULTS.every),
    months: field(
      z.array(z.int().min(1).max(12)).min(1).max(12),
      'The months, instead of the first one of each period.',
      [2, 5, 8, 11],
    ).optional(),
    day: field(
      as.dayRule,
      'Day of the month: 1 to 31 (in a shorter month its last day), `last`, or a weekday such as `first monday`.',
      'first monday',
      15,
      'last',
    ).default({ kind: 'date', day: RETRAIN_DEFAULTS.day }),
    time: field(as.timeOfDay, "The window's opening on the clocks of `zone`.", '06:00').default({
      hour: 6,
      minute: 0,
    }),
    zone: field(
      z.string().refine(isZone, 'must be a time zone such as Europe/Berlin'),
      'Time zone of all dates.',
      'Europe/Berlin',
    ).default(RETRAIN_DEFAULTS.zone),
    blackouts: field(
      z.array(blackout).max(200),
      `Days on which no window opens; each at most ${BLACKOUT_DAYS_MAX} days.`,
      ['2027-12-24', { from: '2027-12-27', to: '2028-01-05' }],
    ).optional(),
    on_blackout: field(
      z.enum(['next-day', 'skip']),
      'Whether a date in a blackout moves to the next allowed day or is skipped.',
      'skip',
    ).default(RETRAIN_DEFAULTS.onBlackout),
    lead: field(
      as.pace,
      `How long before the window a run begins, at most 56d (default: ${formatDuration(RETRAIN_DEFAULTS.leadWithCapacityMs)} with \`capacity\`, otherwise ${formatDuration(RETRAIN_DEFAULTS.leadMs)}).`,
      '42d',
    ).optional(),
    overlap: field(
      z.enum(OVERLAPS),
      'If the previous run is not over: begin after it, skip the new one, or run both.',
      'skip',
    ).default(RETRAIN_DEFAULTS.overlap),
    data: field(
      as.dataWindow,
      'The data window: the last whole `month`, `quarter`, `half-year` or `year` before the date, or a number of days before it (default: as `every`).',
      'quarter',
      '90d',
    ).optional(),
    job: field(
      z.record(z.string(), z.unknown()),
      'The training, with the fields of a job file. Texts may have templates such as `{{ window.start }}`.',
      { run: 'python3 train.py --from {{ window.start }}', resources: { gpus: 8 } },
    ),
    capacity: field(
      capacity,
      'Capacity to reserve for each window (default: none; the job uses any available offer).',
      {
        backend: 'ec2',
        types: ['p5.48xlarge'],
        duration: '4d',
        max_upfront: '$20000',
      },
    ).optional(),
    overrun: field(
      z.strictObject({
        extend_max: field(
          as.budget,
          'Extend a prepaid reservation if that costs no more than moving the rest to `backends`, for at most this in all; without `backends`, whenever it is too short.',
          '$6000',
        ).optional(),
        backends: field(backends, 'Otherwise continue here from the newest checkpoint.', [
          'ec2:on-demand',
        ]).optional(),
      }),
      'If the reservation is too short for the training (default: it ends there, and its checkpoint stays).',
      { backends: ['ec2:on-demand'] },
    ).optional(),
    check_before: field(
      as.span,
      `The checks are made this long before the window opens (default: ${formatDuration(RETRAIN_DEFAULTS.checkMs)}).`,
      '2d',
    ).optional(),
    rehearsal: field(
      z.strictObject(jobChange),
      'A short version of the job, run with the checks; with the fields that differ from those of `job`.',
      {
        run: 'python3 train.py --steps 20',
        backends: ['local'],
      },
    ).optional(),
    budget: field(
      as.budget,
      'The most that one run may cost: capacity, training, evaluation and promotion.',
      '$25000',
    ).optional(),
    evaluation: field(
      evaluation,
      'The gate before a promotion. It may also have the fields of a job file that differ from those of `job`, such as `resources`.',
      {
        run: 'python3 evaluate.py',
        metric: 'val_loss',
        tolerance: '1%',
      },
    ).optional(),
    promotion: field(
      promotion,
      'What makes the new model the one in production (default: nothing); also with fields of a job file.',
      {
        model: 'ranker',
      },
    ).optional(),
    notify: field(
      z.strictObject({
        webhook: field(
          webhook,
          'URL that gets notifications of runs as JSON.',
          'https://hooks.example.com/retraining',
        ).optional(),
        webhook_secret: field(
          envName,
          'Environment variable with such a URL, read and encrypted when the schedule is created.',
          'SLACK_WEBHOOK',
        ).optional(),
      }),
      'Where notifications are sent, in addition to the Temporal page and the record.',
      { webhook_secret: 'SLACK_WEBHOOK' },
    ).optional(),
  })
  .meta({ title: 'Crucible retraining file' })

/** The retraining file's JSON Schema, for editors. */
export function retrainFileJsonSchema(): Record<string, unknown> {
  return z.toJSONSchema(retrainFile, {
    io: 'input',
    target: 'draft-7',
    override: withExamples,
  })
}
