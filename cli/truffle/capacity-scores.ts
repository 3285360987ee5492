import { scoreCapacity, type Inquiry } from '../../backends/ec2/capacity'
import { messageOf } from '../../core/errors'

type Scored = Parameters<typeof scoreCapacity>[1][number]

/** How well EC2 could serve a request in the zone of each pool; missing if the account may not ask. */
export async function capacityScoresOf(
  inquiry: Inquiry,
  pools: readonly Scored[],
  { market, count }: { market: 'on-demand' | 'spot'; count: number },
): Promise<{ capacityOf?: (pool: Scored) => string | undefined; notes: string[] }> {
  try {
    const capacityOf = await scoreCapacity(inquiry, pools, { market, count })
    return {
      capacityOf,
      notes: [`Capacity scores are AWS's for ${count} machines of one type in one zone, ${market}, now.`],
    }
  } catch (error) {
    if (inquiry.signal.aborted) throw error
    const why = 'No capacity scores, which need the AWS support plan Unified Operations'
    return { notes: [`${why} (ec2:GetCapacityManagerSupportabilityScores): ${messageOf(error)}`] }
  }
}
