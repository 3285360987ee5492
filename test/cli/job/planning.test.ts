import { describe, expect, it } from '@jest/globals'
import { Output } from '../../../cli/kit/output'
import { notesOf, showPlan } from '../../../cli/job/planning'
import type { Forecast } from '../../../core/job/forecast'
import { offerKey, type Offer } from '../../../core/offer'
import { groupRejections, type Placement, type PlanReport } from '../../../core/job/plan'
import { DAY_MS, SECOND_MS } from '../../../core/time/time'
import { NOW, OFFER, SPEC } from '../../client/world'
import { Paper } from '../outside'

function placed(offer: Partial<Offer>): Placement {
  const whole = { ...OFFER, ...offer }
  return {
    offer: whole,
    costMicroUsd: 2_000_000,
    durationMs: 7_200_000,
    forecast: FORECAST,
    reasons: ['it is cheap'],
    risks: [],
  }
}

const FORECAST: Forecast = {
  cost: { lowMicroUsd: 1_600_000, highMicroUsd: 2_500_000 },
  finish: { lowMs: 6_000_000, highMs: 9_000_000 },
  startMs: 60_000,
  trainingMs: 7_100_000,
  waitMs: 5_000,
  interruptions: 0,
  chances: {},
  drivers: { cost: ['duration'], finish: ['duration', 'wait'] },
}

const REPORT: PlanReport = {
  prospect: { kind: 'place' },
  placements: [],
  others: [],
  othersTotal: 0,
  rejections: [],
  silentBackends: [],
  relaxations: [],
  isDurationAssumed: false,
}

/** The lines that a plan is shown in. */
function shown(plan: Partial<PlanReport>, isAll = false): string[] {
  const stdout = new Paper()
  const out = new Output({ stdout, stderr: new Paper(), isJson: false, isColourWanted: false })
  showPlan(out, { ...REPORT, ...plan }, { nowMs: NOW, isAll })
  return stdout.text.trimEnd().split('\n')
}

describe('the notes of a plan for programs', () => {
  const spec = { ...SPEC, backends: [{ backend: 'local' }, { backend: 'lambda' }] }

  it.each<[string, Partial<PlanReport>, RegExp]>([
    ['an assumed GPU', { placements: [placed({})], assumedAccelerator: 'A100' }, /training on the A100/],
    ['an assumed duration', { placements: [placed({})], isDurationAssumed: true }, /assume one hour/],
    ['the work that is left', { placements: [placed({})], leftShare: 0.4 }, /40 % of the work/],
    ['a reservation that is over', { named: { state: 'over' } }, /reservation that the job names is over/],
    [
      'prices of a table',
      { placements: [placed({ priceSource: { kind: 'static', observedAtMs: Date.UTC(2026, 0, 19) } })] },
      /^Prices of \w+ have not been read live: they are those of 2026-01-19\. .*doctor/,
    ],
    [
      'prices of another place',
      {
        placements: [placed({})],
        others: [placed({ priceSource: { kind: 'static', observedAtMs: NOW, standIn: 'us-east-1' } })],
      },
      /they are those of us-east-1 of /,
    ],
    ['a missing backend', { absentBackends: ['lambda'] }, /has no backend lambda/],
    [
      'an open reservation that stays free',
      { placements: [placed({ leavesOpen: { reservationId: 'cr-1', free: 2 } })] },
      /^The reservation cr-1 of .* is open, and 2 of its places are free: .* owner keeps paying/,
    ],
    [
      'an open reservation that a job uses',
      {
        placements: [
          placed({
            reservationId: 'cr-1',
            reservation: { free: 1, total: 2, idleMicroUsdPerHour: 1, isOpen: true },
          }),
        ],
      },
      /^The reservation cr-1 is open: /,
    ],
  ])('have %s, as people see it', (_, plan, words) => {
    const notes = notesOf({ plan: { ...REPORT, ...plan }, plannedBy: 'worker' }, { spec }, NOW)
    expect(notes).toEqual([expect.stringMatching(words)])
    if (plan.absentBackends === undefined) expect(shown(plan).join(' ')).toContain(notes[0])
  })

  it('have the reason for a plan of this terminal', () => {
    const found = { plan: REPORT, plannedBy: 'here', whyHere: 'No worker answers.' } as const
    const [note] = notesOf(found, { spec }, NOW)
    expect(note).toBe('No worker answers. Planned here, with the settings of this terminal.')
  })
})

describe('a plan for people', () => {
  it('without a place says what is known of the reservation that the job names', () => {
    expect(shown({ named: { state: 'unknown' } })[1]).toMatch(
      /^The reservation that the job names is unknown/,
    )
    expect(shown({ named: { state: 'over', message: 'cr-1 has ended.' } })[1]).toBe(
      'The reservation that the job names is over. cr-1 has ended.',
    )
    expect(shown({}).join(' ')).not.toMatch(/reservation/)
  })

  it('has the range of its cost, and the chance to keep limits that are set', () => {
    const [head, row] = shown({ placements: [placed({})] })
    expect(head).toMatch(/COST +90 % RANGE +TIME$/)
    expect(row).toMatch(/\$2\.00 +\$1\.60\.\.\$2\.50 +2h$/)
    const chances = { deadline: 0.834, budget: 1 }
    const [limited, chance] = shown({
      placements: [
        { ...placed({}), forecast: { ...FORECAST, chances } },
        { ...placed({ type: 'x' }), forecast: FORECAST },
      ],
    })
    expect(limited).toMatch(/TIME +IN TIME +IN BUDGET$/)
    expect(chance).toMatch(/ 83 % +> 99 %$/)
  })

  it('has for each row its rank, availability, interruptions and how well its cost is known', () => {
    const rows = [
      placed({ type: 'a', availability: 'available' }),
      { ...placed({ type: 'b', availability: 'unknown' }), forecast: { ...FORECAST, interruptions: 0.237 } },
      {
        ...placed({ type: 'c', availability: 'unknown' }),
        forecast: { ...FORECAST, cost: { lowMicroUsd: 1_000_000, highMicroUsd: 9_000_000 } },
      },
    ]
    const [head, ...lines] = shown({ placements: rows })
    expect(head).toMatch(/^ *# +BACKEND.* AVAILABLE +INTERRUPTIONS +CONFIDENCE +COST /)
    expect(lines[0]).toMatch(/^ *1 .* a .* yes +none +high +\$2\.00/)
    expect(lines[1]).toMatch(/^ *2 .* b .* unknown +0\.24 +high +\$2\.00/)
    expect(lines[2]).toMatch(/^ *3 .* c .* unknown +none +low +\$2\.00/)
  })

  it('has where each price comes from and how old it is', () => {
    const [head, ...rows] = shown({
      placements: [
        placed({ type: 'a', priceSource: { kind: 'live', observedAtMs: NOW - 12 * SECOND_MS } }),
        placed({ type: 'b', priceSource: { kind: 'static', observedAtMs: NOW - 306 * DAY_MS } }),
        placed({ type: 'c', priceSource: { kind: 'configured', observedAtMs: NOW } }),
      ],
    })
    const at = head!.indexOf('PRICE SOURCE')
    expect(rows.slice(0, 3).map((row) => row.slice(at).split('  ')[0])).toEqual([
      'live, 12s',
      'table, 306d',
      'setting',
    ])
    const priceSource = { kind: 'static', observedAtMs: NOW - DAY_MS, standIn: 'us-east-1' } as const
    expect(shown({ placements: [placed({ priceSource })] })[1]).toContain('table of us-east-1, 1d')
  })

  it('shows the ten best types unless all are wanted, and says how many there are', () => {
    const placements = Array.from({ length: 12 }, (_, i) => placed({ type: `type-${i}` }))
    const lines = shown({ placements })
    expect(lines.filter((line) => line.includes('type-'))).toHaveLength(10)
    expect(lines[11]).toBe('And 2 more; --all shows them, --json every place.')
    expect(lines.slice(-2)).toEqual(['First because', '  it is cheap'])
    const all = shown({ placements }, true)
    expect(all.filter((line) => line.includes('type-'))).toHaveLength(12)
    expect(all.join()).not.toContain('more;')
  })

  it('has one row per type and capacity type, with its best place and the number of others', () => {
    const zones = ['a', 'b', 'c'].map((place) => placed({ type: 'small', place }))
    const other = placed({ type: 'small', place: 'b', capacityType: 'on-demand' })
    const lines = shown({ placements: [zones[1]!, other, zones[0]!, zones[2]!] })
    expect(
      lines.filter((line) => line.includes('small')).map((line) => line.split(/ {2,}/).slice(1, 5)),
    ).toEqual([
      [OFFER.backend, 'spot', 'small', 'b +2'],
      [OFFER.backend, 'on-demand', 'small', 'b'],
    ])
  })

  it('counts places that it has only in short, too', () => {
    const zones = ['a', 'b', 'c'].map((place) => placed({ type: 'small', place }))
    const lines = shown({ placements: [zones[0]!], others: [zones[1]!, placed({ type: 'big' }), zones[2]!] })
    expect(lines.slice(1, 3).map((line) => line.split(/ {2,}/).slice(3, 5))).toEqual([
      ['small', 'a +2'],
      ['big', OFFER.place],
    ])
  })

  it('says what its figures rest on, and what is likely to be late', () => {
    const placements = [{ ...placed({}), isLate: true as const }]
    const lines = (plan: Partial<PlanReport>): string[] => shown({ placements, ...plan })
    expect(lines({})[1]).toMatch(/ 2h, late$/)
    expect(lines({ isDurationAssumed: true, assumedAccelerator: 'A100' }).at(-1)).toBe(
      'Cost and time assume one hour of training on the A100; --duration narrows the range, and so do the first steps on a machine.',
    )
    // Its cents would say more than is known.
    expect(lines({ isDurationAssumed: true })[1]).toMatch(/ \$2 +\$2\.\.\$3 +2h, late$/)
    expect(lines({ assumedAccelerator: 'A100' }).at(-1)).toBe(
      'The duration is assumed to mean training on the A100; name another GPU type as in --duration "10h on L4".',
    )
    expect(lines({ leftShare: 0.4 }).at(-1)).toBe('Cost and time are for the 40 % of the work that is left.')
    expect(lines({ leftShare: 1 }).at(-1)).toBe('  it is cheap')
  })

  it('has a sentence for each change that would gain, also without any place', () => {
    const relaxations = [
      {
        wish: 'deadline' as const,
        change: 'deadline: 14h',
        offerKey: 'a',
        costMicroUsd: 1,
        durationMs: 1,
        sentence: 'With `deadline: 14h`: $4.10 instead of $9.60',
      },
    ]
    expect(shown({ placements: [placed({})], relaxations }).slice(-2)).toEqual([
      '',
      'With `deadline: 14h`: $4.10 instead of $9.60.',
    ])
    expect(shown({ relaxations }).slice(1)).toEqual(['', 'With `deadline: 14h`: $4.10 instead of $9.60.'])
  })

  it('says in one sentence what was left out for one reason, and with --all names each offer', () => {
    const keys = ['a', 'b', 'c', 'd', 'e'].map((place) => offerKey({ ...OFFER, place }))
    const rejections = groupRejections(
      keys.map((key) => ({
        offerKey: key,
        why: 'unfit',
        code: 'gpu-memory',
        reason: 'GPU memory: has 16 GB, wanted 24 GB+',
      })),
      { keysMax: 100 },
    )
    expect(shown({ rejections }).slice(1)).toEqual([
      '',
      `Excluded: 5 offers with GPUs of a different memory size, such as ${keys[0]} (GPU memory: has 16 GB, wanted 24 GB+); change \`gpu_memory\` to include them`,
    ])
    expect(shown({ rejections }, true).slice(2)).toEqual(
      keys.map((key) => `Excluded: ${key}: GPU memory: has 16 GB, wanted 24 GB+`),
    )
  })
})
