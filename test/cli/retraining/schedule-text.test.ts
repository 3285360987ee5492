import { describe, expect, it } from '@jest/globals'
import { Output } from '../../../cli/kit/output'
import type { Cli } from '../../../cli/cli'
import { showSchedule } from '../../../cli/retraining/schedule-text'
import type { ScheduleView } from '../../../client/retraining/schedule-runs'
import type { RetrainStatus } from '../../../core/retraining/run'
import { DAY_MS } from '../../../core/time/time'
import { SCHEDULE, SPEC_BY_HAND } from '../../workflows/retraining'
import { Paper } from '../outside'

const NOW_MS = Date.UTC(2027, 5, 1)
const VIEW: ScheduleView = {
  name: SCHEDULE,
  revision: 1,
  owner: 'ada',
  state: 'active',
  next: null,
  last: null,
  spec: SPEC_BY_HAND,
  note: null,
  nextStartsAtMs: [],
  running: [],
  silentRuns: 0,
  production: null,
  revisions: [],
  waiting: 0,
  skipped: { overlapped: 0, missed: 0 },
}

function printed(view: Partial<ScheduleView>): string {
  const stdout = new Paper()
  const out = new Output({ stdout, stderr: new Paper(), isJson: false, isColourWanted: false })
  const cli = { out, now: () => NOW_MS, asCalled: (text: string) => text } as unknown as Cli
  showSchedule(cli, { ...VIEW, ...view }, null)
  return stdout.text
}

const running = (more: Partial<RetrainStatus>): RetrainStatus => ({
  schedule: SCHEDULE,
  revision: 1,
  owner: 'ada',
  startedAtMs: NOW_MS,
  state: 'waiting',
  message: 'Waiting until the checks.',
  reservations: [],
  warnings: [],
  jobs: [],
  run: {
    id: '2027-06-30',
    jobPrefix: 'ranker-20270630',
    dates: {
      nominal: '2027-06-30',
      opensAtMs: NOW_MS + 3 * DAY_MS,
      zone: 'Europe/Berlin',
      window: { start: '2027-01-01', end: '2027-04-01' },
      isByHand: false,
      notes: [],
    },
  },
  ...more,
})

describe('what `schedule show` prints', () => {
  it('says of dates how many wait, and how many had no run and why', () => {
    expect(printed({})).not.toMatch(/dates/)
    const text = printed({ waiting: 2, skipped: { overlapped: 3, missed: 1 } })
    expect(text).toMatch(/dates +2 due: waiting for the previous run\n/)
    expect(text).toMatch(/dates +3 skipped: the previous run was not over/)
    expect(text).toMatch(/dates +1 missed: .*`crucible schedule backfill`/)
  })

  it('says when the wait of a run ends, in the zone of its dates, and where its page is', () => {
    const text = printed({ running: [running({ untilAtMs: NOW_MS + DAY_MS, pageUrl: 'http://ui/r' })] })
    expect(text).toMatch(/Run 2027-06-30 {2}waiting: Waiting until the checks\.\n +until +2027-06-02 02:00/)
    expect(text).toMatch(/\n +page +http:\/\/ui\/r\n/)
    expect(text).not.toMatch(/approve/)
  })

  it('says how a model that waits for a person is approved', () => {
    const text = printed({ running: [running({ state: 'awaiting-approval' })] })
    expect(text).toContain('`crucible schedule approve ranker --run 2027-06-30`')
    expect(text).toContain('`crucible schedule reject ranker --run 2027-06-30`')
  })
})
