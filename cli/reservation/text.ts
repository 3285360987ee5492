/** Output of `crucible reservations`. */
import type { KnownReservation, ReservationView } from '../../client/reservation/views'
import { formatUsd } from '../../core/money/money'
import type { OwnedReservation } from '../../core/reservation/reservation'
import { SHARE_DEFAULT, shareInWords } from '../../core/reservation/hold'
import { isReservationFinal, type JudgedQuote, type PurchaseRule } from '../../core/reservation/reserving'
import type { CapacitySurvey } from '../../core/reservation/activities'
import { formatDuration, formatInstant } from '../../core/time/time'
import type { Cli } from '../cli'
import { tellUnseen, type Survey } from './surveys'
import { age, NOTHING, plural, UNKNOWN, usd } from '../kit/words'

const minute = (atMs: number | undefined): string =>
  atMs === undefined ? NOTHING : formatInstant(atMs).slice(0, 16).replace('T', ' ')

/** Prints requests, followed by other owned capacity. */
export function showReservations(
  cli: Cli,
  {
    reservations,
    surveys,
    incomplete,
  }: {
    reservations: KnownReservation[]
    surveys: Survey[]
    incomplete: string | null
  },
): void {
  const { out } = cli
  const held = new Set(reservations.map(({ reservation }) => reservation?.id))
  const owned = surveys.flatMap(({ backend, owned: all }) =>
    all
      .filter(({ id, phase }) => !held.has(id) && !['ended', 'failed'].includes(phase))
      .map((one) => ({ backend, ...one })),
  )
  const unseen = surveys.flatMap((survey) => survey.unseen)
  out.json({ reservations, owned, unseen, incomplete })
  if (reservations.some(({ state }) => state === null)) cli.saysUnknown()
  tellUnseen(cli, surveys)
  if (reservations.length === 0 && owned.length === 0) {
    if (incomplete !== null) return
    const what = unseen.length === 0 ? 'Nothing is reserved.' : 'Nothing was reserved with Crucible.'
    return out.line(cli.asCalled(`${what} See what is for sale with \`crucible reservations offers\`.`))
  }
  out.table(
    ['RESERVATION', 'STATE', 'MACHINES', 'FROM (UTC)', 'TO', 'FREE', 'SPENT', 'IDLE', 'OWNER', 'PURPOSE'],
    [
      ...reservations.map((one) => rowOf(cli, one)),
      ...owned.map((one) => [
        one.id,
        one.phase,
        `${one.total} × ${one.type}`,
        minute(one.startsAtMs),
        minute(one.endsAtMs),
        `${one.free}/${one.total}`,
        NOTHING,
        idlePrice(one),
        NOTHING,
        'bought elsewhere',
      ]),
    ],
    {
      right: ['FREE', 'SPENT', 'IDLE'],
      flexible: 'PURPOSE',
      optional: ['OWNER', 'PURPOSE', 'IDLE', 'TO', 'FREE', 'SPENT', 'FROM (UTC)'],
    },
  )
  for (const { id, trouble } of reservations)
    if (trouble !== undefined) out.note(out.paintNote.yellow(`${id}: ${trouble}`))
}

function idlePrice({ free, idleMicroUsdPerHour = 0 }: OwnedReservation): string {
  return free > 0 && idleMicroUsdPerHour > 0 ? `${formatUsd(free * idleMicroUsdPerHour)}/h` : NOTHING
}

function rowOf({ out }: Cli, status: KnownReservation): string[] {
  const { id, state, wish, reservation, quote, spentMicroUsd, owner, purpose, undecided } = status
  const window = reservation ?? quote?.quote
  const isAsking = state === 'awaiting-approval' || state === 'undecided' || undecided !== undefined
  return [
    id,
    isAsking ? out.paint.yellow(state ?? UNKNOWN) : (state ?? UNKNOWN),
    `${wish.count} × ${(window?.type ?? wish.types[0])!}`,
    minute(window?.startsAtMs),
    minute(window?.endsAtMs),
    reservation === undefined ? NOTHING : `${reservation.free}/${reservation.total}`,
    usd(spentMicroUsd),
    reservation === undefined ? NOTHING : idlePrice(reservation),
    owner,
    purpose ?? '',
  ]
}

export function showReservationView(cli: Cli, view: ReservationView, incomplete: string | null = null): void {
  const { out } = cli
  const { status, record } = view
  out.json({ ...status, record, incomplete })
  if (status.state === null) cli.saysUnknown()
  const {
    id,
    state,
    message,
    trouble,
    quote,
    alternatives,
    reservation,
    decision,
    undecided,
    wish,
    rule: wishRule,
    owner,
    purpose,
  } = status
  out.prose(`${out.paint.bold(id)}  ${state ?? UNKNOWN}: ${message}`)
  const row = (title: string, text: string): void => out.prose(`  ${title.padEnd(10)} ${text}`, 11)
  row('wanted', `${wish.count} × ${wish.types.join(' or ')}, ${wish.kind}, of ${wish.backend}`)
  row('owner', purpose === undefined ? owner : `${owner}: ${purpose}`)
  row('shared', `idle places are for ${shareInWords(wishRule.share ?? SHARE_DEFAULT)}`)
  const limits = limitsOf(wishRule)
  if (limits.length > 0) row('limits', limits.join(', '))
  if (quote !== undefined) row('offer', quoteLine(quote))
  if (decision !== undefined) row(decision.kind, `by ${decision.by} ${age(decision.atMs, cli.now())} ago`)
  if (reservation !== undefined) {
    row(
      'held',
      `${reservation.id}: ${reservation.total} × ${reservation.type} in ${reservation.zone}, ${reservation.state}`,
    )
    row('window', `${windowOf(reservation)} (UTC)`)
  }
  row('spent', `${usd(status.spentMicroUsd)}, of it for unused time ${usd(status.idleMicroUsd)}`)
  if (status.nextLookAtMs !== undefined)
    row('next look', `in ${formatDuration(status.nextLookAtMs - cli.now())}`)
  if (trouble !== undefined) out.prose(out.paint.yellow(`  ${trouble}`))
  if (state === 'awaiting-approval')
    out.line(
      cli.asCalled(
        `  Buy it with \`crucible reservations approve ${id}\`, or \`reject\` it. If another customer buys it first, the search continues.`,
      ),
    )
  if (undecided !== undefined) {
    out.line('  It is unknown whether this purchase was made. Nothing else is bought meanwhile.')
    for (const line of undecided.account) out.line(`    ${line}`)
    for (const one of undecided.candidates)
      out.line(`    may be it: ${one.id}, ${one.total} × ${one.type} in ${one.zone}`)
    out.line(
      cli.asCalled(
        `  Check the account's reservations and bill, then: \`crucible reservations decide ${id} --bought RESERVATION\` or \`--not-bought\`.`,
      ),
    )
  }
  // Once capacity is held, the other quotes are obsolete.
  const isOver = state !== null && isReservationFinal(state)
  const others = reservation === undefined && !isOver ? alternatives : []
  if (others.length > 0) out.line('  Others:')
  for (const one of others) out.line(`    ${quoteLine(one)}`)
  if (record.length > 0) out.line('  Record (UTC):')
  for (const { atMs, summary } of record.slice(-RECORD_SHOWN)) out.line(`    ${minute(atMs)}  ${summary}`)
}

/** Describes the cost limits of the rule. */
function limitsOf(rule: PurchaseRule): string[] {
  const limits: [number | undefined, (amount: number) => string][] = [
    [rule.upfrontMaxMicroUsd, (amount) => `${formatUsd(amount)} upfront`],
    [rule.machineHourMaxMicroUsd, (amount) => `${formatUsd(amount)} per machine and hour`],
    [rule.unaskedMaxMicroUsd, (amount) => `up to ${formatUsd(amount)} without approval`],
    [rule.spendMaxMicroUsd, (amount) => `released before unused time costs ${formatUsd(amount)}`],
    [rule.extendMaxMicroUsd, (amount) => `${formatUsd(amount)} for extensions`],
    [rule.idleMaxMs, (ms) => `released after ${formatDuration(ms)} without use`],
  ]
  return limits.flatMap(([limit, words]) => (limit === undefined ? [] : [words(limit)]))
}

function windowOf({ startsAtMs, endsAtMs, usableUntilMs }: OwnedReservation): string {
  const end = endsAtMs === undefined ? 'its release' : minute(endsAtMs)
  const usable = usableUntilMs === undefined ? '' : `; usable until ${minute(usableUntilMs)}`
  return `${minute(startsAtMs)} to ${end}${usable}`
}

/** Number of shown entries, a screenful; `--json` has all of them. */
const RECORD_SHOWN = 12

export function showOffers(cli: Cli, { quotes, unseen }: Pick<CapacitySurvey, 'quotes' | 'unseen'>): void {
  const { out } = cli
  out.json({ quotes, unseen })
  tellUnseen(cli, [{ unseen }])
  if (quotes.length === 0) return out.line('No matching capacity is for sale now.')
  out.table(
    ['MACHINES', 'ZONE', 'FROM (UTC)', 'TO', 'UPFRONT', 'MACHINE-HOUR', 'REMARK'],
    quotes.map(({ quote, machineHourMicro, refusal }) => [
      `${quote.count} × ${quote.type}`,
      quote.zone,
      minute(quote.startsAtMs),
      quote.endsAtMs === undefined ? 'until released' : minute(quote.endsAtMs),
      quote.kind === 'prepaid' ? amount(quote.upfrontMicro, quote.currency) : NOTHING,
      amount(machineHourMicro, quote.currency),
      refusal === undefined ? (quote.note ?? '') : 'refused',
    ]),
    { right: ['UPFRONT', 'MACHINE-HOUR'], flexible: 'REMARK' },
  )
  // Refusals are printed whole, because a cut one explains nothing.
  const refusals = quotes.flatMap(({ refusal }) => refusal ?? [])
  for (const reason of new Set(refusals)) {
    const count = refusals.filter((other) => other === reason).length
    out.line(`The rule refuses ${plural(count, 'offer')}: ${reason}.`)
  }
}

function amount(micro: number, currency: string): string {
  return currency === 'USD' ? formatUsd(micro) : `${(micro / 1e6).toFixed(2)} ${currency}`
}

function quoteLine({ quote, machineHourMicro, refusal }: JudgedQuote): string {
  const { count, type, zone, startsAtMs, endsAtMs, upfrontMicro, currency } = quote
  const upfront = quote.kind === 'prepaid' ? `${amount(upfrontMicro, currency)} upfront, ` : ''
  const price = `${upfront}${amount(machineHourMicro, currency)} per machine and hour`
  const why = refusal === undefined ? '' : ` (${refusal})`
  return `${count} × ${type} in ${zone}, ${minute(startsAtMs)} to ${endsAtMs === undefined ? 'its release' : minute(endsAtMs)}: ${price}${why}`
}
