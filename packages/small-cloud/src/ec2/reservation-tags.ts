import { ApiError } from '../wire/errors'
import { checkTagList } from './launch-plan'

/** Checks the tags of a new reservation. */
export function checkReservationTags(
  specifications: readonly { ResourceType: string; Tag: { Key: string; Value: string }[] }[] = [],
): void {
  for (const { ResourceType, Tag } of specifications) {
    if (ResourceType !== 'capacity-reservation')
      throw new ApiError(
        'InvalidParameterValue',
        `'${ResourceType}' is not a valid taggable resource type for this operation.`,
      )
    checkTagList(Tag)
  }
}
