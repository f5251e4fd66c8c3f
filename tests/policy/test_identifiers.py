"""Identifiers are recognised by name in any case style, and by how many values differ."""

from __future__ import annotations

import pytest

from sulq.policy.identifiers import id_named, identifier


@pytest.mark.parametrize(
    "name",
    [
        "id",
        "ID",
        "PatientId",
        "patientId",
        "patient_id",
        "PATIENT_ID",
        "patientid",
        "CustomerID",
        "AppointmentID",
        "encounter id",
        "id_patient",
        "IDNumber",
        "patient_nbr",
        "account_no",
        "accountNumber",
        "row_number",
        "RowNumber",
        "rownum",
        "mrn",
        "MRN",
        "ssn",
        "patient.ssn",
        "email",
        "E-Mail",
        "eMail",
        "email2",
        "name",
        "Name",
        "full_name",
        "fullName",
        "lastname",
        "customer name",
        "iban",
        "address",
        "address_line1",
        "ip_address",
        "phone",
        "phoneNumber",
        "uuid",
        "customer",
        "user_key",
        "prénom",
        "Adresse",
        "row_index",
        "admission_type_id",
        "IDNUM",
        "idnr",
        "Kundennummer",
        "personnummer",
    ],
)
def test_names_of_identifiers(name: str) -> None:
    assert id_named(name)


@pytest.mark.parametrize(
    "name",
    [
        "age",
        "paid",
        "void",
        "valid",
        "covid",
        "city",
        "city_name",
        "country",
        "income",
        "width",
        "number_diagnoses",
        "num_procedures",
        "No_show",
        "number",
        "body_mass_index",
        "price_index",
        "education-num-years",
        "no",
        "keyboard",
        "hidden",
        "customer_age",
        "patient_weight",
        "",
        "123",
        "Neighbourhood",
        "time_in_hospital",
        "diag_1",
        "mailing",
        "user_rating",
    ],
)
def test_names_of_other_columns(name: str) -> None:
    assert not id_named(name)


def test_a_code_with_few_values_is_none() -> None:
    assert identifier("admission_type_id", "whole", 8, 100_000) is None
    assert identifier("admission_type_id", "whole", 100, 100_000) is None
    assert identifier("PatientId", "other", 101, 100_000) == "by name"


def test_nearly_all_different_values_tell_rows_apart() -> None:
    assert identifier("code", "text", 901, 1000) == "by values"
    assert identifier("code", "whole", 901, 1000) == "by values"
    assert identifier("code", "text", 900, 1000) is None
    # measurements and times are nearly always different, and identify nobody by that
    assert identifier("code", "other", 1000, 1000) is None
    assert identifier("age", "whole", 29, 29) is None  # of a few people all ages may differ
    assert identifier("age", "whole", 0, 0) is None
