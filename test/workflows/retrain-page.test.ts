/** The page of a run in Temporal's Web UI. */
import { describe, expect, it } from '@jest/globals'
import type { RetrainStatus } from '../../core/retraining/run'
import { retrainDetails } from '../../workflows/retraining/page'

const OPENS_MS = Date.UTC(2027, 0, 4, 8)
const STATUS: RetrainStatus = {
  schedule: 'ranker',
  revision: 1,
  owner: 'ada',
  state: 'waiting',
  message: 'It waits.',
  startedAtMs: 0,
  reservations: [],
  warnings: [],
  jobs: [],
  run: {
    id: '2027-01-04',
    jobPrefix: 'ranker-20270104',
    dates: {
      nominal: '2027-01-04',
      opensAtMs: OPENS_MS,
      zone: 'UTC',
      isByHand: false,
      notes: [],
      window: { start: '2026-10-01', end: '2027-01-01' },
    },
  },
}
const linesOf = (more: Partial<RetrainStatus> = {}): string[] =>
  retrainDetails({ ...STATUS, ...more }).split('\n')

describe('the page of a run', () => {
  it('begins with its state, its dates and how to see more', () => {
    expect(linesOf({ untilAtMs: OPENS_MS })).toEqual([
      '**waiting**: It waits.',
      '',
      '- waits until: 2027-01-04T08:00:00Z',
      '- window: 2027-01-04T08:00:00Z',
      '- data: from 2026-10-01 up to 2027-01-01',
      '',
      'More: `crucible schedule show ranker`, `crucible schedule history ranker`',
    ])
    const { run } = STATUS
    const byHand = { ...run!, dates: { ...run!.dates, isByHand: true } }
    expect(linesOf({ run: byHand })).toContain('- window: 2027-01-04T08:00:00Z (by hand)')
  })

  it('says how to answer while a model waits for approval, with the link to pass on', () => {
    const how =
      'Put it into production: `crucible schedule approve ranker --run 2027-01-04`. Keep the old one: `crucible schedule reject ranker --run 2027-01-04`.'
    const asks = ['', '**Waits for approval.** Without an answer, the old model stays.', '', how]
    const link = ['', 'Link for the person who approves it: <https://ui.test/run>']
    const pageUrl = 'https://ui.test/run'
    const rest = (lines: string[]): string[] => lines.slice(4, -2)
    expect(rest(linesOf({ state: 'awaiting-approval' }))).toEqual(asks)
    expect(rest(linesOf({ state: 'awaiting-approval', pageUrl }))).toEqual([...asks, ...link])
    expect(rest(linesOf({ state: 'promoting', pageUrl }))).toEqual([])
  })

  it('shows the model, what the gate said, and the last reservations', () => {
    const model = {
      jobId: 'job-1',
      checkpointId: '7-1',
      step: 7,
      digest: '0123456789abcdef',
      artifactsUrl: 's3://b/a',
    }
    const verdict = {
      isPassed: true,
      message: 'loss is 1.5.',
      metric: 'loss',
      value: 1.5,
      production: null,
      productionFrom: 'none' as const,
    }
    const reservations = ['res-1', 'res-2', 'res-3', 'res-4'].map((id) => ({
      id,
      state: 'unavailable' as const,
      message: 'It costs $5.',
      spentMicroUsd: 0,
    }))
    const lines = linesOf({ model, verdict, reservations })
    expect(lines.filter((line) => line.startsWith('- capacity'))).toEqual([
      '- capacity res-2: unavailable, It costs `$5`.',
      '- capacity res-3: unavailable, It costs `$5`.',
      '- capacity res-4: unavailable, It costs `$5`.',
    ])
    expect(lines).toContain('- model: job-1, step 7, 0123456789ab')
    expect(lines).toContain('- gate: loss is 1.5.')
  })

  it('lists its jobs with their costs, its trouble, and the last warnings', () => {
    const jobs: RetrainStatus['jobs'] = [
      {
        part: 'training',
        jobId: 'job-1',
        startedAtMs: 0,
        endedAtMs: 1,
        state: 'succeeded',
        costMicroUsd: 2_500_000,
      },
      { part: 'evaluation', jobId: 'job-2', startedAtMs: 1 },
    ]
    const warnings = Array.from({ length: 14 }, (_, index) => `Warning ${index}.`)
    const lines = linesOf({ jobs, warnings, trouble: 'No answer.' })
    expect(lines.slice(0, 4)).toEqual(['**waiting**: It waits.', '', '**Trouble, retrying:** No answer.', ''])
    expect(lines).toEqual(
      expect.arrayContaining(['- training: job-1, succeeded, `$2.50`', '- evaluation: job-2, running']),
    )
    expect(lines.filter((line) => line.startsWith('- Warning'))).toEqual(
      warnings.slice(2).map((each) => `- ${each}`),
    )
  })
})

describe('text of strangers on the page of a run', () => {
  const HOSTILE = [
    '[click](https://evil.example)',
    '![](//evil.example/pixel)',
    '<img src=x onerror=alert(1)>',
    'a\n\n# Approved\n\n- by you',
    'www.evil.example `code` ` half [x](y)',
    '\u001b[2J\u202egnp.exe',
  ]
  const places: [string, (text: string) => Partial<RetrainStatus>][] = [
    ['its message', (message) => ({ message })],
    ['its trouble', (trouble) => ({ trouble })],
    ['a warning', (warning) => ({ warnings: [warning] })],
    ['its gate', (message) => ({ verdict: { message } as RetrainStatus['verdict'] })],
    [
      'a reservation',
      (message) => ({ reservations: [{ id: 'res-1', state: 'searching', message }] as never }),
    ],
    ['a job', (jobId) => ({ jobs: [{ part: 'training', jobId }] as never })],
  ]

  it.each(places)('in %s stays text on its line', (_, at) => {
    const lines = linesOf(at('harmless')).length
    for (const text of HOSTILE) {
      const page = linesOf(at(text))
      expect([text, page.length]).toEqual([text, lines])
      const outsideCode = page.map((line) => line.replace(/`[^`]+`/g, '')).join('\n')
      expect(outsideCode).not.toMatch(/(?<!\\)[[<]|:\/\/|\bwww\.|^#/m)
    }
  })
})
