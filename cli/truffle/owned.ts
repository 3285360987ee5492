import {
  blocksTerraform,
  findOwned,
  freeIn,
  jointRoom,
  parsePattern,
  reservationsTerraform,
  type RegionAnswers,
  type RegionalType,
  type Inquiry,
  type Owned,
  type OwnedAnswer,
  type ReservationKind,
} from '../../backends/ec2/capacity'
import type { Output } from '../kit/output'
import { refuseUnknownTypes } from './commands/search'
import type { Row } from './answer'
import type { SharedOptions } from './options'
import {
  BLOCK_COLUMNS,
  BLOCK_HEAD,
  blockCells,
  blockRow,
  blockSummary,
  ODCR_COLUMNS,
  ODCR_HEAD,
  odcrCells,
  odcrRow,
  odcrSummary,
} from './reservation-rows'
import { endingOfNothing, unansweredRows, type Session } from './session'

export interface CapacityOptions extends SharedOptions {
  odcr?: true
  blocks?: true
  instanceTypes?: string[]
  az?: string[]
  gpuOnly?: true
  availableOnly?: true
  activeOnly?: true
  minCapacity?: number
  all?: true
  topology?: true
  offerings?: true
  count?: number
  days?: number
  durationHours?: number
  startAfter?: number
  startBefore?: number
  endBy?: number
  sort: 'start' | 'price'
}

interface OwnedOfKind {
  kind: ReservationKind
  owned: Owned[]
  asked: RegionAnswers<OwnedAnswer>
}

/** Lists own reservations of one kind, or of both kinds in turn. */
export async function showOwned(session: Session, options: CapacityOptions): Promise<void> {
  const inquiry = session.inquiry(options)
  const kinds: ReservationKind[] = [
    ...(options.blocks !== true || options.odcr === true ? ['on-demand' as const] : []),
    ...(options.blocks === true ? ['capacity-block' as const] : []),
  ]
  const found: OwnedOfKind[] = []
  for (const kind of kinds) found.push(await ownedOf(inquiry, options, kind))
  const all = found.flatMap(({ owned }) => owned)
  const { unanswered } = found[0]!.asked
  const named =
    all.length > 0 ? [] : await refuseUnknownTypes(inquiry, (options.instanceTypes ?? []).map(parsePattern))
  const rows = found.flatMap(({ kind, owned }) => owned.map(kind === 'on-demand' ? odcrRow : blockRow))
  session.answer({
    command: 'capacity',
    results: rows,
    columns: columnsOf(kinds),
    more: {
      reservation_types: kinds.map((kind) => (kind === 'on-demand' ? 'odcr' : kind)),
      summary: summaryRow(found),
    },
    unanswered: unansweredRows(unanswered),
    notes: [
      ...found.flatMap((one) => notesOf(one, options)),
      ...(options.blocks === true ? neverSold(named) : []),
      ...(await inquiry.notes()),
    ],
    show: (out) => found.forEach((one) => show(session, out, one)),
    terraform: () => terraformOf(found, options),
    ending: all.length === 0 ? endingOfNothing({ unanswered }) : undefined,
  })
}

async function ownedOf(
  inquiry: Inquiry,
  options: CapacityOptions,
  kind: ReservationKind,
): Promise<OwnedOfKind> {
  const asked = await findOwned(inquiry, {
    kind,
    patterns: (options.instanceTypes ?? []).map(parsePattern),
    isAcceleratedOnly: options.gpuOnly === true,
    isAvailableOnly: options.availableOnly === true,
    isActiveOnly: options.activeOnly === true,
    minCapacity: options.minCapacity ?? 0,
    hasEnded: options.all === true,
    zones: options.az ?? [],
  })
  const owned = asked.answers.flatMap(({ value }) => value.owned)
  return { kind, owned: owned.sort((a, b) => a.region.localeCompare(b.region)), asked }
}

function columnsOf(kinds: readonly ReservationKind[]): string[] {
  return [...new Set(kinds.flatMap((kind) => (kind === 'on-demand' ? ODCR_COLUMNS : BLOCK_COLUMNS)))]
}

function summaryRow(found: readonly OwnedOfKind[]): Row {
  const owned = found.flatMap((one) => one.owned.map(({ reservation }) => reservation))
  return {
    total: owned.length,
    instance_types: [...new Set(owned.map(({ type }) => type))].sort(),
    total_capacity: owned.reduce((sum, { total }) => sum + total, 0),
    available_capacity: owned.reduce((sum, one) => sum + freeIn(one), 0),
  }
}

function notesOf({ kind, owned, asked }: OwnedOfKind, { minCapacity }: CapacityOptions): string[] {
  const all = asked.answers.flatMap(({ value }) => value.notes)
  const joint =
    minCapacity === undefined
      ? []
      : jointRoom(
          asked.answers.flatMap(({ value }) => value.joinable),
          minCapacity,
        )
  const together = joint.map(
    ({ type, zone, room }) =>
      `No single reservation has room for ${minCapacity}, but those of ${type} in ${zone} have room for ${room} together.`,
  )
  const meaning =
    owned.length === 0
      ? []
      : kind === 'on-demand'
        ? [
            'Every instance of an on-demand reservation is billed at the on-demand price, used or not, until the reservation ends or is cancelled.',
          ]
        : [
            "EC2 begins to end a block's machines 30 minutes before its end; a scheduled block cannot be used before its start.",
          ]
  const taken = owned
    .filter(({ reservation }) => reservation.isInterruptible)
    .map(({ reservation }) => reservation.id)
  const interruptible =
    taken.length === 0
      ? []
      : [
          `Interruptible, so that no job runs there (its owner ends machines with a notice of two minutes): ${taken.join(', ')}.`,
        ]
  return [...all, ...together, ...interruptible, ...meaning]
}

/** Says that AWS sells no Capacity Blocks of these types, so that no user waits for one. */
function neverSold(named: readonly RegionalType[]): string[] {
  const types = [...new Set(named.map(({ type }) => type.name))].sort()
  if (types.length === 0 || named.some(({ type }) => type.usageClasses.includes('capacity-block'))) return []
  return [`AWS sells no Capacity Blocks of ${types.join(', ')}; an on-demand reservation can hold them.`]
}

function show(session: Session, out: Output, { kind, owned }: OwnedOfKind): void {
  const isBlocks = kind === 'capacity-block'
  if (owned.length === 0) {
    out.line(isBlocks ? 'No Capacity Block of this account fits.' : 'No on-demand capacity reservation fits.')
    return
  }
  out.line(
    session.title('📊', isBlocks ? 'Capacity Block Summary:' : 'Capacity Reservation Summary (ODCRs):'),
  )
  for (const line of isBlocks ? blockSummary(owned) : odcrSummary(owned)) out.line(`   ${line}`)
  out.line()
  out.table(isBlocks ? BLOCK_HEAD : ODCR_HEAD, owned.map(isBlocks ? blockCells : odcrCells), {
    right: ['Count', 'Total', 'Available', 'Duration'],
    optional: ['Usable Until', 'Region', 'Ends', 'Block ID'],
  })
  if (isBlocks)
    out.block('\nUltraCluster Placement: Yes (AWS places every Capacity Block in an UltraCluster)')
}

function terraformOf(found: readonly OwnedOfKind[], options: CapacityOptions): string {
  const texts = found.map(({ kind, owned }) => {
    const values = owned.map(({ region, reservation: value }) => ({ region, value }))
    if (kind === 'capacity-block') return blocksTerraform(values)
    const [type, ...others] = options.instanceTypes ?? []
    const [zone] = options.az ?? []
    const isNew = type !== undefined && others.length === 0 && zone !== undefined
    const region = zone?.replace(/[a-z]$/, '')
    const wish = isNew ? { region: region!, zone, type, count: options.minCapacity ?? 1 } : undefined
    return reservationsTerraform(values, wish)
  })
  // One file needs only one block of required providers.
  return [texts[0]!, ...texts.slice(1).map((text) => text.replace(/^terraform \{[^]*?\n\}\n\n?/, ''))].join(
    '\n',
  )
}
