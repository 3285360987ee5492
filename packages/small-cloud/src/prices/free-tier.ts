/** The plan of the account. */
import { z } from 'zod'
import { action, type Service } from '../wire/service'
import type { World } from '../world/world'

const CREDITS_USD = 100
const FREE_FOR_MS = 182 * 24 * 3_600_000

export function freeTierService(world: World, nowMs: () => number): Service {
  return {
    name: 'freetier',
    style: 'json',
    namespace: 'AWSFreeTierService',
    actions: {
      GetAccountPlanState: action({
        input: z.strictObject({}),
        run: () => ({
          accountId: world.account,
          accountPlanType: world.plan === 'free' ? 'FREE' : 'PAID',
          ...(world.plan === 'free'
            ? {
                accountPlanStatus: 'ACTIVE',
                accountPlanRemainingCredits: { amount: CREDITS_USD, unit: 'USD' },
                accountPlanExpirationDate: (nowMs() + FREE_FOR_MS) / 1_000,
              }
            : { accountPlanStatus: 'NOT_STARTED' }),
        }),
      }),
    },
  }
}
