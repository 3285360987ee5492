import { ApiError } from '../wire/errors'
import { checkTagList } from './launch-plan'

/** Checks the tags of a new reservation, or of another kind of resource. */
export function checkReservationTags(
  specifications: readonly { ResourceType: string; Tag: { Key: string; Value: string }[] }[] = [],
  kind = 'capacity-reservation',
): void {
  for (const { ResourceType, Tag } of specifications) {
    if (ResourceType !== kind)
      throw new ApiError(
        'InvalidParameterValue',
        `'${ResourceType}' is not a valid taggable resource type for this operation.`,
      )
    checkTagList(Tag)
  }
}
