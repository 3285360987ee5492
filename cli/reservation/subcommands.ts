/** Subcommands of `crucible reservations` that act on an existing reservation. */
import type { Share } from '../../core/reservation/hold'
import * as client from '../../client/reservation/reservations'
import { CrucibleError } from '../../client/errors'
import { openReservation, showReservation, type ReservationView } from '../../client/reservation/views'
import { defined } from '../../core/defined'
import { plural } from '../../core/plural'
import { priceInWords } from '../../core/reservation/quote-words'
import { formatUsd } from '../../core/money/money'
import { boughtUntilMs, type ReservationKind } from '../../core/reservation/reservation'
import { formatDuration, formatInstant } from '../../core/time/time'
import type { Deadline } from '../../intake/units'
import { instantFor } from '../kit/arguments'
import type { Cli } from '../cli'
import { tellGaps } from '../kit/gaps'
import * as text from './text'

/** The options of the command, of all its actions. */
export interface Options {
  backend: string
  kind: ReservationKind
  type?: string[]
  count?: number
  for?: number
  from?: Deadline
  startBy?: Deadline
  endBy?: Deadline
  region?: string[]
  zone?: string[]
  maxUpfront?: number
  maxPrice?: number
  unasked?: number
  maxSpend?: number
  releaseIdle?: number
  extendMax?: number
  share?: Share
  until?: Deadline | 'never'
  purpose?: string
  notify?: string
  id?: string
  note?: string
  bought?: string
  notBought?: true
  maxCharge?: number
  weeks: number
  ical?: true
  yes?: true
}

type Word = 'show' | 'approve' | 'reject' | 'decide' | 'extend' | 'resize' | 'split' | 'release'

export async function tell(
  cli: Cli,
  action: Word,
  { meant, options }: { meant: string; options: Options },
): Promise<void> {
  const context = cli.context()
  const open = action === 'reject' || action === 'release' ? await openReservation(context, meant) : undefined
  const view = open === undefined ? await showReservation(context, meant) : { status: open, record: [] }
  const { id } = view.status
  switch (action) {
    case 'show':
      return text.showReservationView(cli, view, tellGaps(cli, context.gaps))
    case 'approve': {
      const { quote, state } = view.status
      if (quote !== undefined && state === 'awaiting-approval') {
        if (!cli.out.isJson) text.showReservationView(cli, view)
        await agree(cli, `Buy it for ${priceInWords(quote.quote)}?`, options)
      }
      return done(cli, id, await client.approveReservation(context, id))
    }
    case 'reject':
      return done(cli, id, await client.rejectReservation(context, id, options.note))
    case 'decide': {
      if ((options.bought === undefined) === (options.notBought === undefined))
        throw new CrucibleError('usage', 'State the outcome of the purchase.', {
          hint: "Add --bought with the provider's id, or --not-bought once it is certainly in neither its list nor its bill.",
        })
      return done(cli, id, await client.decidePurchase(context, id, options.bought ?? null))
    }
    case 'extend':
      return extend(cli, view, options)
    case 'resize':
      return resize(cli, view, options)
    case 'split': {
      const { count } = options
      if (count === undefined)
        throw new CrucibleError('usage', 'Number of machines to split off missing.', {
          hint: 'Write, for example, --count 2.',
        })
      await agree(cli, `Split ${plural(count, 'machine')} off ${id}?`, options)
      const split = { count, id: options.id }
      const { newId, message } = await client.splitReservation(context, id, split)
      cli.out.json({ id, newId, message })
      return cli.out.line(`${id}: ${message}`)
    }
    case 'release':
      return release(cli, view, options)
  }
}

/** Note for hourly capacity: the provider ends no machine with the reservation. */
const MACHINES_STAY = 'Machines in it keep running, at the on-demand price.'

async function release(cli: Cli, { status }: ReservationView, options: Options): Promise<void> {
  const { id, state, reservation, wish } = status
  if (state === 'searching' || state === 'awaiting-approval')
    throw new CrucibleError('usage', `${id} holds no capacity yet.`, {
      hint: `Stop its search with \`crucible reservations reject ${id}\`.`,
    })
  const what = reservation === undefined ? id : `${id} (${reservation.total} × ${reservation.type})`
  if (wish.kind === 'hourly') await agree(cli, `Give back ${what}? ${MACHINES_STAY}`, options)
  const { message } = await client.releaseReservation(cli.context(), id, options.maxCharge ?? 0)
  return done(cli, id, { message: `${message} ${MACHINES_STAY}` })
}

async function extend(cli: Cli, { status }: ReservationView, options: Options): Promise<void> {
  const { for: durationMs, until, maxUpfront: upfrontMaxMicroUsd } = options
  if (until === 'never') throw new CrucibleError('usage', 'Prepaid capacity always has an end.')
  if ((durationMs === undefined) === (until === undefined) || upfrontMaxMicroUsd === undefined)
    throw new CrucibleError(
      'usage',
      'An extension needs its duration or its new end, and its highest price.',
      {
        hint: 'Write, for example, --for 1d --max-upfront 5000; with --until TIME instead, the command can be repeated.',
      },
    )
  const { id, reservation } = status
  const seenEndsAtMs = reservation && boughtUntilMs(reservation)
  const endsAtMs = until && (await instantFor(cli, until))
  const from = seenEndsAtMs === undefined ? '' : `, which ends ${formatInstant(seenEndsAtMs)},`
  const to = endsAtMs === undefined ? `by ${formatDuration(durationMs!)}` : `to ${formatInstant(endsAtMs)}`
  await agree(cli, `Prolong ${id}${from} ${to} for at most ${formatUsd(upfrontMaxMicroUsd)}?`, options)
  const wish = { upfrontMaxMicroUsd, durationMs, endsAtMs, seenEndsAtMs }
  return done(cli, id, await client.extendReservation(cli.context(), id, wish))
}

async function resize(cli: Cli, { status }: ReservationView, options: Options): Promise<void> {
  const { count, until, from, maxSpend: spendMaxMicroUsd, share } = options
  if (from !== undefined) return postpone(cli, status, { from, options })
  if ([count, until, spendMaxMicroUsd, share].every((one) => one === undefined))
    throw new CrucibleError('usage', 'Nothing to change.', {
      hint: 'Write, for example, --count 4, --until 2027-01-31T18:00:00Z, --until never, --max-spend 500, or --share none.',
    })
  const endsAtMs = until === 'never' ? null : until && (await instantFor(cli, until))
  const { id, reservation } = status
  const total = reservation?.total ?? status.wish.count
  const each = reservation?.idleMicroUsdPerHour
  const cost =
    count === undefined || each === undefined
      ? ''
      : ` ${count === 1 ? 'It costs' : 'They cost'} ${formatUsd(count * each)} per hour, used or not.`
  const question =
    count === undefined ? `Change ${id}?` : `Change ${id} from ${total} to ${plural(count, 'machine')}?`
  await agree(cli, `${question}${cost}`, options)
  const change = defined({ count, endsAtMs, spendMaxMicroUsd, share })
  return done(cli, id, await client.resizeReservation(cli.context(), id, change))
}

/** Shows the terms of a later start, which move the commitment and cost nothing, and asks. */
async function postpone(
  cli: Cli,
  { id, reservation, quote }: ReservationView['status'],
  { from, options }: { from: Deadline; options: Options },
): Promise<void> {
  const { count, until, maxSpend, share } = options
  if ([count, until, maxSpend, share].some((one) => one !== undefined))
    throw new CrucibleError('usage', 'A new start is changed alone.', {
      hint: 'Leave out the other changes.',
    })
  const startsAtMs = await instantFor(cli, from)
  const now = reservation?.startsAtMs
  const committedMs = quote?.quote.committedMs
  const terms =
    committedMs === undefined ? '' : ` Its commitment then ends ${formatInstant(startsAtMs + committedMs)}.`
  const was = now === undefined ? '' : ` from ${formatInstant(now)}`
  await agree(cli, `Postpone the start of ${id}${was} to ${formatInstant(startsAtMs)}?${terms}`, options)
  return done(cli, id, await client.resizeReservation(cli.context(), id, { startsAtMs }))
}

function done(cli: Cli, id: string, { message }: { message: string }): void {
  cli.out.json({ id, message })
  cli.out.line(`${id}: ${message}`)
}

/** A person who is not asked must have said so. */
async function agree(cli: Cli, question: string, { yes }: Options): Promise<void> {
  const isAgreed = yes === true || (await cli.confirm(question))
  if (isAgreed === true) return
  if (isAgreed === undefined)
    throw new CrucibleError('usage', `This needs a confirmation: ${question}`, { hint: 'Add --yes.' })
  throw new CrucibleError('usage', 'Nothing was changed.')
}
