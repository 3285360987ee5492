import {
  compareOfferings,
  coverageOfOffering,
  findOfferings,
  hoursOfDays,
  notCovered,
  offeringsTerraform,
  parsePattern,
  sellable,
} from '../../backends/ec2/capacity'
import { CrucibleError } from '../../client/errors'
import { refuseUnknownTypes } from './commands/search'
import type { CapacityOptions } from './owned'
import {
  OFFERING_COLUMNS,
  OFFERING_HEAD,
  offeringCells,
  offeringRow,
  purchaseCommand,
  reserveCommand,
} from './reservation-rows'
import { endingOfNothing, unansweredRows, type Session } from './session'

/** Lists the Capacity Blocks for sale, and what the search did not cover. */
export async function showOfferings(session: Session, options: CapacityOptions): Promise<void> {
  const { count = 1, startAfter, startBefore, endBy, durationHours, az = [] } = options
  const days = options.days ?? (durationHours === undefined ? 1 : durationHours / hoursOfDays(1))
  checkDates(options, session.now())
  const sold = sellable({ count, days })
  const inquiry = session.inquiry(options)
  const asked = await findOfferings(inquiry, {
    patterns: (options.instanceTypes ?? []).map(parsePattern),
    count,
    days,
    startsAfterMs: startAfter,
    startsBeforeMs: startBefore,
    endsBeforeMs: endBy,
    zones: az,
  })
  if (asked.answers.every(({ value }) => value.types.length === 0))
    await refuseUnknownTypes(inquiry, (options.instanceTypes ?? []).map(parsePattern))
  const nowMs = inquiry.clock()
  const found = asked.answers
    .flatMap(({ region, value }) => value.offerings.map((offering) => ({ region, value: offering })))
    .map((one) => ({ ...one, ...coverageOfOffering(one.value, { days, nowMs }) }))
  const byPrice = [...found].sort(compareOfferings('price'))
  const offerings = options.sort === 'price' ? byPrice : found.sort(compareOfferings('start'))
  const uncovered = notCovered({ days }, asked)
  const [first] = offerings
  session.answer({
    command: 'capacity',
    results: offerings.map(offeringRow),
    columns: OFFERING_COLUMNS,
    more: { offerings: true, count, days: sold.days, not_covered: uncovered },
    unanswered: unansweredRows(asked.unanswered),
    notes: [
      ...(sold.note === undefined ? [] : [sold.note]),
      ...uncovered,
      ...(first === undefined
        ? []
        : [
            'An offering is sold to the first buyer. A block is paid at once and cannot be cancelled; it can be extended.',
          ]),
      ...(await inquiry.notes()),
    ],
    show: (out) => {
      if (first === undefined) return out.line('No Capacity Block for sale fits.')
      out.line(
        session.title(
          '🛒',
          `Capacity Blocks for sale: ${count} for ${sold.days} ${sold.days === 1 ? 'day' : 'days'}`,
        ),
      )
      out.table(OFFERING_HEAD, offerings.map(offeringCells), {
        right: ['Count', 'Hours', 'Upfront', 'Per Day', 'Per Useful h', 'Short'],
        optional: ['Per Day', 'Hours'],
      })
      const { region, value } = byPrice[0]!
      out.block('\nTo search for the cheapest for its hours, buy it once after your approval, and watch it:')
      out.line(`   ${reserveCommand(region, value)}`)
      out.line('Without Crucible:')
      out.line(`   ${purchaseCommand(region, value)}`)
    },
    terraform: () => offeringsTerraform(offerings, { count, durationHours: hoursOfDays(sold.days) }),
    ending: first === undefined ? endingOfNothing(asked) : undefined,
  })
}

function checkDates({ startAfter, startBefore, endBy }: CapacityOptions, nowMs: number): void {
  const late = [startBefore, endBy].find((atMs) => atMs !== undefined && atMs < nowMs)
  if (late !== undefined)
    throw new CrucibleError('usage', `${new Date(late).toISOString().slice(0, 10)} has passed.`, {
      hint: 'Write a later date; a date alone means its midnight in UTC.',
    })
  const end = startBefore ?? endBy
  if (startAfter !== undefined && end !== undefined && startAfter > end)
    throw new CrucibleError('usage', '--start-after is later than --start-before or --end-by.')
}
