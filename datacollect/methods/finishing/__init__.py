"""Steps that every plan goes through: derated, repeated by days, cut at files, made, judged."""
