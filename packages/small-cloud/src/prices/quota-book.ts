/** The current quotas of an account, and the state of increase requests. */
import type { World } from '../world/world'
import { QUOTAS } from './quotas'

export interface Increase {
  Region: string
  Id: string
  CaseId: string
  ServiceCode: string
  QuotaCode: string
  QuotaName: string
  DesiredValue: number
  Status: 'PENDING' | 'APPROVED' | 'DENIED'
  /** Seconds since 1970. */
  Created: number
  LastUpdated: number
  Requester: string
  QuotaArn: string
  GlobalQuota: boolean
  Unit: string
}

export class QuotaBook {
  private readonly asked: Increase[] = []

  constructor(
    private readonly world: World,
    private readonly nowMs: () => number,
  ) {}

  add(increase: Increase): void {
    this.asked.push(increase)
  }

  /** Returns every request in its current state, oldest first. */
  increases(): Increase[] {
    const { quotaDecision: decision } = this.world
    return this.asked.map((increase) => {
      const decidedAt = increase.Created + (decision?.after ?? 0) / 1000
      if (decision === undefined || this.nowMs() / 1000 < decidedAt) return increase
      return { ...increase, Status: decision.isGranted ? 'APPROVED' : 'DENIED', LastUpdated: decidedAt }
    })
  }

  /** Returns the quota in vCPUs. */
  valueOf({ code, region }: { code: string; region: string }): number {
    const granted = this.increases()
      .filter((each) => each.QuotaCode === code && each.Region === region && each.Status === 'APPROVED')
      .map(({ DesiredValue }) => DesiredValue)
    const own = this.world.regions.get(region)?.quotas[code]
    return Math.max(own ?? this.world.quotas[code] ?? QUOTAS[code]?.usual ?? 0, ...granted)
  }
}
