/** The public file behind the Spot Instance Advisor: how often spot machines were taken back. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { World } from '../world/world'

const PATH = '/spot-bid-advisor/spot-advisor-data.json'

const RANGES = [
  { index: 0, label: '<5%', dots: 0, max: 5 },
  { index: 1, label: '5-10%', dots: 1, max: 11 },
  { index: 2, label: '10-15%', dots: 2, max: 16 },
  { index: 3, label: '15-20%', dots: 3, max: 22 },
  { index: 4, label: '>20%', dots: 4, max: 100 },
]
/** Savings in per cent, which AWS publishes although prices show them better. */
const SAVINGS = 60

export class SpotAdvisor {
  constructor(private readonly world: World) {}

  owns(url: string): boolean {
    return url.split('?')[0] === PATH
  }

  async handle(_request: IncomingMessage, response: ServerResponse): Promise<void> {
    const types = Object.fromEntries(
      Object.entries(this.world.interruptionBands).map(([type, band]) => [type, { s: SAVINGS, r: band }]),
    )
    const regions = [...this.world.regions.keys()].map((region) => [region, { Linux: types }] as const)
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(
      JSON.stringify({ ranges: RANGES, instance_types: {}, spot_advisor: Object.fromEntries(regions) }),
    )
  }

  async close(): Promise<void> {}
}
